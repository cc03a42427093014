import { enableCompileCache } from 'node:module';

// Before anything else is loaded: each thread compiles its modules anew otherwise.
enableCompileCache();
await import('./thread-main.ts');
