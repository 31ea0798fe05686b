/**
 * Parts of the contract that several groups have in common.
 */
import * as Schema from "effect/Schema"

/** Fields of every reply to a change (behaviour "Starting, configuration"). */
export const lasting = {
  /** False when the change ends with the process. */
  config_writable: Schema.Boolean,
  /** True when only a sync to the hosting platform keeps the change. */
  needs_host_sync: Schema.Boolean
}

/** A flag of a query: `true` or `false`; empty counts as absent. */
export const Switch = Schema.Literals(["true", "false", ""])

/** A number of a query; a form sends an empty text for a field that was left empty. */
export const PageNumber = Schema.Union([Schema.Literal(""), Schema.FiniteFromString])

/** Query of a list with pages. */
export const pageQuery = {
  page: Schema.optionalKey(PageNumber),
  page_size: Schema.optionalKey(PageNumber),
  q: Schema.optionalKey(Schema.String)
}

/** Fields of a page; `total` counts the items of all pages. */
export const pageFields = {
  total: Schema.Int,
  page: Schema.Int,
  page_size: Schema.Int,
  total_pages: Schema.Int
}

/** Reply field with the nodes that did not answer; absent unless several nodes share a store. */
export const missingNodes = { nodes_missing: Schema.optionalKey(Schema.Array(Schema.String)) }
