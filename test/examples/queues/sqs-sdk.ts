// Stands for `@aws-sdk/client-sqs`, which Lambda has: sends a message to its queue.

export class SendMessageCommand {
  readonly input: { readonly QueueUrl: string; readonly MessageBody: string };

  constructor(input: SendMessageCommand["input"]) {
    this.input = input;
  }
}

export class SQSClient {
  async send(
    { input }: SendMessageCommand,
    { abortSignal: signal }: { abortSignal: AbortSignal },
  ): Promise<void> {
    const sent = await fetch(input.QueueUrl, { method: "POST", body: input.MessageBody, signal });
    if (!sent.ok) throw new Error(`SQS answered ${sent.status}`);
  }
}
