import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { onDemand } from "../../../support/on-demand.ts";

/** A server that rotates refresh tokens, and revokes all tokens of a login when one of them is used twice. */
export interface TokenServer {
  readonly url: string;
  /** How many refreshes it has granted. */
  readonly refreshes: number;
  /** How many logins it has revoked. */
  readonly revoked: number;
  /** The refresh token of a new login. */
  login(): Promise<string>;
  close(): Promise<void>;
}

/** `oidc-provider`, as far as it is used here. It has no types. */
interface Provider {
  callback(): Parameters<typeof createServer>[1];
  on(event: string, listener: (context: { oidc?: { params?: { grant_type?: string } } }) => void): void;
  readonly Client: { find(id: string): Promise<unknown> };
  readonly Grant: new (fields: object) => { addOIDCScope(scope: string): void; save(): Promise<string> };
  readonly RefreshToken: new (fields: object) => { save(): Promise<string> };
}

const client = { client_id: "id", client_secret: "secret" };
const scope = "openid offline_access";

export async function startTokenServer(): Promise<TokenServer> {
  const { Provider } = (await import(pathToFileURL(join(onDemand(), "oidc-provider/lib/index.js")).href)) as {
    Provider: new (issuer: string, options: object) => Provider;
  };
  const http = createServer();
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const provider = new Provider(url, {
    clients: [
      {
        ...client,
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: ["https://app.example/callback"],
      },
    ],
    rotateRefreshToken: true,
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    ttl: { AccessToken: 3_600, Grant: 86_400, IdToken: 3_600, RefreshToken: 86_400 },
  });
  let refreshes = 0;
  let revoked = 0;
  provider.on("grant.success", () => {
    refreshes += 1;
  });
  provider.on("grant.revoked", () => {
    revoked += 1;
  });
  http.on("request", provider.callback()!);
  return {
    url,
    get refreshes() {
      return refreshes;
    },
    get revoked() {
      return revoked;
    },
    async login() {
      const accountId = "alice";
      const grant = new provider.Grant({ accountId, clientId: client.client_id });
      grant.addOIDCScope(scope);
      const grantId = await grant.save();
      return new provider.RefreshToken({
        accountId,
        client: await provider.Client.find(client.client_id),
        grantId,
        gty: "authorization_code",
        scope,
      }).save();
    },
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}
