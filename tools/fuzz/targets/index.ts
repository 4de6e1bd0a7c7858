import type { FuzzTarget } from '../target.ts';
import { gitHub } from './gitHub.ts';
import { messages } from './messages.ts';
import { policies } from './policies.ts';
import { runners } from './runners.ts';
import { sets } from './sets.ts';
import { webhook } from './webhook.ts';

export const TARGETS: readonly FuzzTarget[] = [webhook, sets, runners, policies, gitHub, messages];
