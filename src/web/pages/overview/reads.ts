/**
 * The last hour, as the parts of the page read it.
 */
import { readOf } from "../../state/reads.ts"

export const hourAtom = readOf("admin-minutes", "list", { reactivityKeys: ["minutes"] })

/** Everything of the last hour, and of the running minute. */
export const lastHour = { range: "1h" } as const

/** What the configuration says and does not do is among its warnings. */
export const settingsAtom = readOf("admin-settings", "fields", {
  reactivityKeys: ["config", "settings", "upstreams", "keys"]
})
