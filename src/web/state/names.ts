/**
 * Names of upstreams and accounts.
 */
import type { AccountItem } from "./client.ts"

/** The name of the upstream of the configuration's group `upstream`. */
export const defaultUpstream = "default"

/** The name of an account among those of all upstreams. */
export const accountName = ({ identifier, upstream }: Pick<AccountItem, "identifier" | "upstream">): string =>
  upstream === undefined || upstream === defaultUpstream ? identifier : `${upstream}/${identifier}`
