import { NativeConnection } from '@temporalio/worker';
import type { Connect } from './connect.ts';

/** Connects a Worker. */
export const connectNative: Connect<NativeConnection> = async (options) =>
  await NativeConnection.connect(options);
