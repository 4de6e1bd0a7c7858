/**
 * Implements `holdfast codec-server`, with which the Temporal UI and CLI decode encrypted payloads.
 */
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { CODEC_KEY_FILE, CodecKeyFile } from '../../worker/codec/codecKeyFile.ts';
import { createCodecServer, isLoopback } from '../../worker/codec/codecServer.ts';
import { EncryptionCodec } from '../../worker/codec/encryptionCodec.ts';
import { EXIT_STATUS } from '../../worker/process/exitStatus.ts';
import { createLogger } from '../../worker/process/logger.ts';
import { listenAddress } from '../../worker/settings/settingTypes.ts';
import { listenForShutdown } from '../../worker/process/stopSignal.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';

/** Options of `holdfast codec-server`. */
export interface CodecServerFlags {
  readonly listen: string;
  /**
   * Origins that may send requests.
   * @default the origin of the Temporal UI if it is known, otherwise that of `temporal server
   * start-dev`
   */
  readonly origin?: readonly string[];
  readonly tokenFile?: string;
}

const DEV_SERVER_UI = ['http://localhost:8233', 'http://127.0.0.1:8233'];

/**
 * Runs the codec server until SIGTERM or SIGINT.
 * @param ui - address of the Temporal UI, if known
 * @returns the exit status
 * @throws CliError `usage`
 */
export async function codecServer(
  output: Output,
  env: Readonly<Record<string, string | undefined>>,
  flags: CodecServerFlags,
  ui: string | undefined,
): Promise<number> {
  const logger = createLogger(
    { level: 'info', format: output.json ? 'json' : 'text' },
    pino.destination({ dest: 2, sync: true }),
  );
  const { host, port } = addressOf(flags.listen);
  if (flags.tokenFile === undefined && !isLoopback(host)) {
    throw new CliError(
      'usage',
      `--listen: ${flags.listen} can be reached from other machines, and everyone who reaches it can read all payloads; add --token-file, or listen on 127.0.0.1`,
    );
  }
  const server = createCodecServer({
    codec: new EncryptionCodec(keysIn(env, (message) => logger.error(message))),
    origins: (flags.origin ?? (ui === undefined ? DEV_SERVER_UI : [ui])).map(originOf),
    tokens: tokensIn(flags.tokenFile),
    logger,
  });
  const stop = listenForShutdown();
  try {
    const address = await server.listen({ host, port });
    output.note('listening', `codec server at ${address}: temporal --codec-endpoint ${address} …`, {
      address,
    });
    if (!stop.signal.aborted)
      await new Promise((resolve) => stop.signal.addEventListener('abort', resolve));
    return EXIT_STATUS[stop.name ?? 'SIGTERM'];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new CliError(
      'usage',
      `--listen: cannot listen on ${flags.listen} (${code}): choose another address or port`,
      { cause: error },
    );
  } finally {
    stop.dispose();
    await server.close();
  }
}

function addressOf(listen: string): { host: string; port: number } {
  const { data, error } = listenAddress.safeParse(listen);
  if (data === undefined)
    throw new CliError('usage', `--listen: ${error?.issues[0]?.message ?? ''}`);
  return data;
}

function originOf(address: string): string {
  const origin = URL.parse(address)?.origin;
  if (origin === undefined || !/^https?:/.test(origin))
    throw new CliError(
      'usage',
      `--origin: "${address}" is not the URL of a Temporal UI; write for example http://localhost:8233`,
    );
  return origin;
}

function keysIn(
  env: Readonly<Record<string, string | undefined>>,
  onError: (message: string) => void,
): CodecKeyFile {
  const path = env[CODEC_KEY_FILE];
  if (path === undefined || path === '')
    throw new CliError('usage', `${CODEC_KEY_FILE} must be set to the key file of the workers`);
  try {
    return new CodecKeyFile(path, ({ message }) => onError(message));
  } catch (error) {
    throw new CliError('usage', `${CODEC_KEY_FILE}: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Returns a function that reads the tokens for each request, so they can be rotated. Each line of
 * the file is one token.
 */
function tokensIn(file: string | undefined): (() => string[]) | undefined {
  if (file === undefined) return undefined;
  const read = (): string[] => {
    const tokens = readFileSync(file, 'utf8')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    if (tokens.length === 0) throw new Error(`${file} is empty; put a token into it`);
    return tokens;
  };
  try {
    read(); // reports a missing file at the start, not at the first request
  } catch (error) {
    throw new CliError('usage', `--token-file: ${(error as Error).message}`, { cause: error });
  }
  return read;
}
