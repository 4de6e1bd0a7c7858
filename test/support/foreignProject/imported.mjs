/** An ES module. */
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import * as holdfast from 'holdfast';
import * as contract from 'holdfast/contract';
import { runOne } from './runOne.cjs';

await runOne({ Client, Connection, NativeConnection, Worker, ...holdfast, ...contract });
