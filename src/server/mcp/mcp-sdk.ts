/** What is used of the SDK for MCP. The build has it in few files (scripts/build/bundle-packages.ts). */
export { type CallToolResult, createMcpHandler, McpServer } from '@modelcontextprotocol/server';
export { serveStdio } from '@modelcontextprotocol/server/stdio';
