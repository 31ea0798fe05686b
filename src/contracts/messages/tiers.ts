import type { Json } from "../../domain/json.ts"

/** The tiers of the messages style, by the names that servers have for them. */
export const messagesTiers: ReadonlyMap<Json | undefined, "standard" | "priority" | "batch"> = new Map([
  ["default", "standard"],
  ["standard", "standard"],
  ["on_demand", "standard"],
  ["priority", "priority"],
  ["batch", "batch"]
])
