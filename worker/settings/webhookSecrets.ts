import { readFileSync } from 'node:fs';

/** Returns the current secrets, newest first. A file may change while the process runs. */
export type WebhookSecrets = () => readonly string[];

/** Address that receives deliveries, and the secrets that sign them. */
export interface WebhookEndpoint {
  readonly host: string;
  readonly port: number;
  readonly secrets: WebhookSecrets;
}

/**
 * Returns a function that reads the current secrets.
 * @returns `undefined` if no secret is set
 * @throws Error if the file cannot be read or is empty
 */
export function webhookSecrets(
  set: Readonly<Record<string, string | undefined>>,
): WebhookSecrets | undefined {
  const inline = set['HOLDFAST_WEBHOOK_SECRET'];
  if (inline !== undefined) return () => [inline];
  const file = set['HOLDFAST_WEBHOOK_SECRET_FILE'];
  if (file === undefined) return undefined;
  const read = (): string[] => {
    const secrets = readText(file)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    if (secrets.length === 0) throw new Error(`${file} is empty: put the webhook's secret into it`);
    return secrets;
  };
  read(); // reports a missing file at the start, not at the first delivery
  return read;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(
      `cannot read ${file} (${(error as NodeJS.ErrnoException).code}): check the path and its permissions`,
      { cause: error },
    );
  }
}
