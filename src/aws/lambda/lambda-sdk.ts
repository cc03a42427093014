/**
 * What is used of the AWS SDK. Loaded only when it is needed; the build has it in few files (scripts/build/bundle-packages.ts).
 */
export {
  CreateFunctionCommand,
  GetFunctionCommand,
  GetFunctionConfigurationCommand,
  InvokeCommand,
  LambdaClient,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda';
