import { expect, test } from '@jest/globals';
import { headerRejection } from '../../../worker/webhook/headerRejection.ts';
import { GITHUB_DELIVERIES } from '../../../worker/webhook/servers/github/gitHubDeliveries.ts';

const GOOD = {
  'content-type': 'application/json',
  'content-length': '7000',
  'x-hub-signature-256': `sha256=${'0a'.repeat(32)}`,
  'x-github-event': 'workflow_job',
  'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
};

test.each<[string, Record<string, string | string[] | undefined>, number | undefined]>([
  ['as GitHub sends it', {}, undefined],
  ['a type with its charset', { 'content-type': 'Application/JSON; charset=utf-8' }, undefined],
  ['in chunks of unknown length', { 'content-length': undefined }, undefined],
  ['a body of 1 MiB', { 'content-length': '1048576' }, undefined],
  ['another event', { 'x-github-event': 'push' }, undefined],
  ['no type', { 'content-type': undefined }, 415],
  ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
  ['another JSON', { 'content-type': 'application/json5' }, 415],
  ['a body that is a byte too long', { 'content-length': '1048577' }, 413],
  ['no signature', { 'x-hub-signature-256': undefined }, 401],
  [
    'two signatures',
    { 'x-hub-signature-256': `${GOOD['x-hub-signature-256']}, ${GOOD['x-hub-signature-256']}` },
    401,
  ],
  [
    'a signature that is too long',
    { 'x-hub-signature-256': `${GOOD['x-hub-signature-256']}0` },
    401,
  ],
  ['the SHA-1 signature', { 'x-hub-signature-256': `sha1=${'0a'.repeat(20)}` }, 401],
  ['no event', { 'x-github-event': undefined }, 400],
  ['an invalid event', { 'x-github-event': 'workflow job' }, 400],
  ['no delivery', { 'x-github-delivery': undefined }, 400],
  ['an empty delivery id', { 'x-github-delivery': '' }, 400],
  ['an invalid delivery id', { 'x-github-delivery': 'a b' }, 400],
  ['a delivery id that is too long', { 'x-github-delivery': 'a'.repeat(101) }, 400],
])('%s', (_what, change, status) => {
  expect(headerRejection(GITHUB_DELIVERIES, { ...GOOD, ...change })?.status).toBe(status);
});
