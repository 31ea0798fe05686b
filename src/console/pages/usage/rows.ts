/**
 * Rows of usage, as the admin API tells them.
 */
import type { Reply } from "../../state/client.ts"

type Usage = Reply<"admin-usage", "query">

export type UsageRow = Usage["rows"][number]
export type Measures = Usage["totals"]
