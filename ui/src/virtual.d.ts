/** The XID catalogue of `data/xid.yml`, by code; put in by the build. */
declare module "virtual:xids" {
  const xids: Record<string, { name?: string; causes?: string; action?: string; severity?: string }>;
  export default xids;
}
