/** How a person started this program: what is printed as the next command works when it is typed so. */
export function programName(env: NodeJS.ProcessEnv = process.env): string {
  const isNpx = env.npm_command === 'exec' && /^'?seine\b/.test(env.npm_lifecycle_script ?? '');
  return isNpx ? 'npx seine' : 'seine';
}
