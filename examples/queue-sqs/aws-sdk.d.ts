/** Declares the part of `@aws-sdk/client-sqs` that is used here. Delete it if the package is installed. */
declare module "@aws-sdk/client-sqs" {
  export class SendMessageCommand {
    constructor(input: { QueueUrl: string | undefined; MessageBody: string | undefined });
  }
  export class SQSClient {
    send(command: SendMessageCommand, options?: { abortSignal?: AbortSignal }): Promise<unknown>;
  }
}
