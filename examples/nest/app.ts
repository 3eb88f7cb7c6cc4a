// Reports: of all replicas, one at a time builds a customer's. A request that has to wait too long gets 409.

import {
  type ArgumentsHost,
  BadGatewayException,
  Catch,
  ConflictException,
  Controller,
  Module,
  Param,
  Post,
} from "@nestjs/common";
import { APP_FILTER, BaseExceptionFilter, NestFactory } from "@nestjs/core";
import { LockHeldError } from "redlock-edge";
import { heldLock, Locked, RedlockModule } from "./locked.js";

@Controller("reports")
class Reports {
  @Locked((customer: string) => `report:${customer}`, { wait: 1_000, fencing: true })
  @Post(":customer")
  async build(@Param("customer") customer: string): Promise<{ built: string }> {
    const { signal, fence } = heldLock();
    const reports = process.env.REPORTS_URL ?? "https://reports.example";
    // The service refuses a smaller fence than the last one.
    const stored = await fetch(`${reports}/${customer}?fence=${fence}`, { method: "PUT", signal });
    if (!stored.ok) throw new BadGatewayException(`the reports answered ${stored.status}`);
    return { built: customer };
  }
}

@Catch(LockHeldError)
class HeldFilter extends BaseExceptionFilter {
  override catch(_error: LockHeldError, host: ArgumentsHost): void {
    super.catch(new ConflictException("this report is being built"), host);
  }
}

@Module({
  imports: [RedlockModule],
  controllers: [Reports],
  providers: [{ provide: APP_FILTER, useClass: HeldFilter }],
})
class App {}

async function start(): Promise<void> {
  const app = await NestFactory.create(App);
  app.enableShutdownHooks(); // a deployment lets requests finish, so that no lock is left behind
  await app.listen(Number(process.env.PORT ?? 3000));
  console.log(`listening on ${await app.getUrl()}`);
}

void start();
