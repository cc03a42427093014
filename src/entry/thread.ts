import { useCompileCache } from './compile-cache.ts';

// Before anything else is loaded: each thread compiles its modules anew otherwise.
useCompileCache();
await import('./thread-main.ts');
