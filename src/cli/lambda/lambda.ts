import { SeineError } from '../../core/errors.ts';
import type { Command } from '../context.ts';

const VERBS: Record<string, () => Promise<Command>> = {
  build: async () => (await import('./build-command.ts')).buildCommand,
  deploy: async () => (await import('./deploy-command.ts')).deployCommand,
  warm: async () => (await import('./warm-command.ts')).warmCommand,
  local: async () => (await import('./local-command.ts')).localCommand,
};

export const lambdaCommand: Command = async (context) => {
  const [verb = ''] = context.parsed.args;
  if (!Object.hasOwn(VERBS, verb))
    throw new SeineError(
      `seine lambda needs one of build, deploy, warm and local${verb && `, got '${verb}'`}`,
      {
        hint: 'see `seine lambda --help`',
      },
    );
  return (await VERBS[verb]!())(context);
};
