import { randomInt } from 'node:crypto';

const ADJECTIVES = ['amber', 'bold', 'brisk', 'calm', 'clear', 'deft', 'eager', 'fair', 'fleet', 'grand', 'keen', 'light', 'lucid', 'mellow', 'merry', 'noble', 'prime', 'quick', 'quiet', 'rapid', 'sharp', 'solid', 'spry', 'steady', 'sturdy', 'swift', 'tidy', 'vivid', 'warm', 'wise'];
const NOUNS = ['badger', 'beaver', 'bison', 'crane', 'falcon', 'finch', 'gecko', 'heron', 'ibex', 'jackal', 'kestrel', 'lark', 'lemur', 'lynx', 'marten', 'mole', 'newt', 'ocelot', 'osprey', 'otter', 'owl', 'puffin', 'raven', 'robin', 'seal', 'stork', 'swan', 'tapir', 'viper', 'wren'];

/** A name that people can say and type, such as `brisk-otter-7f3a`: one of 59 million. */
export function readableName(random: (below: number) => number = randomInt): string {
  return `${ADJECTIVES[random(ADJECTIVES.length)]}-${NOUNS[random(NOUNS.length)]}-${random(0x1_0000).toString(16).padStart(4, '0')}`;
}
