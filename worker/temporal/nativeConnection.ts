import { NativeConnection } from '@temporalio/worker';
import type { Connect } from './connect.ts';

/** What a Worker needs. */
export const connectNative: Connect<NativeConnection> = async (options) =>
  await NativeConnection.connect(options);
