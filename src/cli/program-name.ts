/** How a person started this program: what is printed as the next command works when it is typed so. */
export function programName(env: NodeJS.ProcessEnv = process.env): string {
  const isNpx = env.npm_command === 'exec' && /^'?seine\b/.test(env.npm_lifecycle_script ?? '');
  // A script of package.json finds the programs of its project, a shell does not. npm 11 has renamed the command.
  const isScript = env.npm_command === 'run-script' || env.npm_command === 'run';
  return isNpx || isScript ? 'npx seine' : 'seine';
}

/** Options that say where the jobs are: the next command needs them, too. */
const PLACE_OPTIONS = ['dir', 'store', 'config'] as const;

/** A command to type next, in the place that this one was told of. A password is not printed: its option is left out. */
export function nextCommand(
  given: Readonly<Record<string, string>>,
  words: string,
  env: NodeJS.ProcessEnv = process.env,
): string {
  const places = PLACE_OPTIONS.flatMap((name) => {
    const value = given[name];
    if (value === undefined || /^\w+:\/\/[^/]*:[^/]*@/.test(value)) return [];
    return [`--${name} ${/^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`}`];
  });
  return [programName(env), words, ...places].join(' ');
}
