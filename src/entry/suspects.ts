import { useCompileCache } from './compile-cache.ts';

useCompileCache();
await import('./suspects-main.ts');
