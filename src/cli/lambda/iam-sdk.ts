/** What is used of the AWS SDK. The build has it in few files (scripts/build/bundle-packages.ts). */
export {
  CreateRoleCommand,
  GetRoleCommand,
  GetRolePolicyCommand,
  IAMClient,
  PutRolePolicyCommand,
  UpdateAssumeRolePolicyCommand,
} from '@aws-sdk/client-iam';
