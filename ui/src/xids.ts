// What an XID means and what to do, from the catalogue in `data/`; loaded when a page first asks.

import { createResource, type Resource } from "solid-js";

export type Xids = Record<string, { name?: string; causes?: string; action?: string; severity?: string }>;

export function xidCatalog(): Resource<Xids> {
  const [xids] = createResource(async (): Promise<Xids> => (await import("virtual:xids")).default);
  return xids;
}
