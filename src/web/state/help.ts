/**
 * Addresses of the pages that the running gateway serves at `/help`, which the console links to.
 */
import type { Page } from "./route.ts"

/** The page of the documents about each page of the console. */
export const helpPages: Readonly<Record<Page, string>> = {
  overview: "operate/monitoring",
  requests: "operate/requests",
  usage: "guides/usage",
  playground: "start/quickstart",
  keys: "guides/keys-and-limits",
  models: "guides/prices",
  accounts: "guides/account-pool",
  upstreams: "guides/upstreams",
  routes: "guides/routing-and-failover",
  settings: "reference/configuration",
  webhooks: "operate/webhooks",
  transfer: "operate/backup",
  changes: "operate/changes",
  samples: "operate/requests",
  about: "README"
}

/** The address of a page of the documents, by its name without a suffix; `row` is a code or a setting in one of its tables. */
export const helpAddress = (page: string, row?: string): string =>
  `../help/${page}${row === undefined ? "" : `#${row}`}`

/** The address of what the documents say about a setting. */
export const settingHelp = (path: string): string => helpAddress(helpPages.settings, path)
