#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { SimulatorOptions } from './options.ts';
import { startSimulator } from './simulator.ts';

const USAGE = `Usage: node tools/simulator/main.ts [options]

A simulator of GitHub's runner API, with webhooks, faults on demand and its own runner program (tools/simulator/runner.ts).

  --port N                 port to listen on (default: any free one)
  --host H                 address to listen on (default: 127.0.0.1)
  --public-url URL         address under which runners reach it (default: the listening address)
  --webhook-url URL        where to send workflow_job events
  --webhook-secret S       what they are signed with
  --token T                a personal access token that sees everything (default: ghp_simulator)
  --state FILE             keep registrations and jobs in this file
  --config FILE            JSON with any of the fields of SimulatorOptions; the flags win
  --help

Prints one JSON line {"url": …} when it listens. Control API: <url>/_sim/…
`;

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    host: { type: 'string' },
    'public-url': { type: 'string' },
    'webhook-url': { type: 'string' },
    'webhook-secret': { type: 'string' },
    token: { type: 'string' },
    state: { type: 'string' },
    config: { type: 'string' },
    help: { type: 'boolean' },
  },
});

if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}

const simulator = await startSimulator({
  ...(values.config === undefined
    ? {}
    : (JSON.parse(readFileSync(values.config, 'utf8')) as SimulatorOptions)),
  ...(values.port === undefined ? {} : { port: Number(values.port) }),
  ...(values.host === undefined ? {} : { host: values.host }),
  ...(values['public-url'] === undefined ? {} : { publicUrl: values['public-url'] }),
  ...(values['webhook-url'] === undefined
    ? {}
    : { webhook: { url: values['webhook-url'], secret: values['webhook-secret'] ?? '' } }),
  ...(values.token === undefined ? {} : { tokens: [{ token: values.token, name: 'default' }] }),
  ...(values.state === undefined ? {} : { stateFile: values.state }),
});
process.stdout.write(`${JSON.stringify({ url: simulator.url })}\n`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void simulator.stop().then(() => process.exit(0));
  });
}
