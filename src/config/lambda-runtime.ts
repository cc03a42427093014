/** Apart from all other settings: the loop of an environment is to load nothing before the function. */

/** Where the loop of an environment gets its events: set by Lambda, not by people. */
export function lambdaRuntimeOf(env: NodeJS.ProcessEnv = process.env): {
  api: string;
  /** Of the function; null where it is not known. */
  memoryMb: number | null;
} {
  return {
    api: env.AWS_LAMBDA_RUNTIME_API ?? '',
    memoryMb: Number(env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE) || null,
  };
}
