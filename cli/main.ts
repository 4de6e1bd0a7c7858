#!/usr/bin/env node
/** Entry point of the command `holdfast`. */
import { continueAfterPipeClosed } from './shared/closedPipe.ts';
import { holdfast } from './program.ts';

const isReaderGone = continueAfterPipeClosed(process.stdout);
continueAfterPipeClosed(process.stderr);

process.exit(
  await holdfast(process.argv.slice(2), {
    stdout: process.stdout,
    stderr: process.stderr,
    isReaderGone,
    env: process.env,
    interactive: process.stdin.isTTY === true && process.stderr.isTTY === true,
  }),
);
