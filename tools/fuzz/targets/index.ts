import type { FuzzTarget } from '../target.ts';
import { arc } from './arc.ts';
import { gitHub } from './gitHub.ts';
import { messages } from './messages.ts';
import { policies } from './policies.ts';
import { runners } from './runners.ts';
import { sets } from './sets.ts';
import { webhook } from './webhook.ts';

export const TARGETS: readonly FuzzTarget[] = [
  webhook,
  sets,
  arc,
  runners,
  policies,
  gitHub,
  messages,
];
