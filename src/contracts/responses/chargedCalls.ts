/** The calls of the vendor's tools in a reply that are charged. */
import type { JsonRecord } from "../../domain/json.ts"
import { toolCallsOf } from "../shared/usageDetails.ts"

/** The vendor's tools whose calls are charged, by the type of their items (https://platform.openai.com/docs/pricing). */
const chargedTools: ReadonlyMap<unknown, string> = new Map([
  ["web_search_call", "web_search"],
  ["file_search_call", "file_search"],
  ["code_interpreter_call", "code_interpreter"]
])

/** Counts them. */
export class ChargedCalls {
  /** Finished calls of the vendor's tools, by tool. */
  #toolCalls: Map<string, number> | undefined

  /** Counts a call by its item, once it is whole. */
  take({ status, type }: JsonRecord): void {
    const tool = chargedTools.get(type)
    if (tool === undefined || status === "failed" || status === "in_progress") return
    this.#toolCalls ??= new Map()
    this.#toolCalls.set(tool, (this.#toolCalls.get(tool) ?? 0) + 1)
  }

  /** The counts by tool; `undefined` without a call. */
  get counts(): ReturnType<typeof toolCallsOf> | undefined {
    return this.#toolCalls && toolCallsOf(this.#toolCalls)
  }
}
