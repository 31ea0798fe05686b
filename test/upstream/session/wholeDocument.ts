/**
 * A straightforward interpreter of session replies: the whole document after each patch, by the protocol's rules as they
 * are written there, with no regard to cost. The decoder must say the same.
 */
import { isRecord } from "../../../src/domain/json.ts"

type Json = null | boolean | number | string | Array<Json> | { [key: string]: Json }
export interface Patch {
  readonly p?: string
  readonly o?: string
  readonly v: Json
}

export interface Interpreted {
  readonly reasoning: string
  readonly text: string
  readonly status: string | undefined
  readonly completionTokens: number | undefined
}

/** Sets or appends at a path; returns the changed copy. */
const change = (node: Json | undefined, path: ReadonlyArray<string>, operation: string, value: Json): Json => {
  const [head, ...rest] = path
  if (head === undefined) {
    if (operation === "SET") return value
    if (Array.isArray(node)) return Array.isArray(value) ? [...node, ...value] : [...node, value]
    return String(node ?? "") + String(value)
  }
  if (Array.isArray(node)) {
    const index = head === "-1" ? node.length - 1 : Number(head)
    return node.map((element, i) => i === index ? change(element, rest, operation, value) : element)
  }
  const object = isRecord(node) ? node : {}
  return { ...object, [head]: change(object[head], rest, operation, value) }
}

const parts = (path: string | undefined): Array<string> => (path ?? "").split("/").filter((part) => part !== "")

export const makeInterpreter = () => {
  let document: Json = {}
  let path: string | undefined
  let operation = "SET"
  /** Text of streams whose documents are gone: an empty snapshot starts anew. */
  let earlier = { reasoning: "", text: "" }
  let first = false
  let completionTokens: number | undefined

  const response = () => {
    const value = isRecord(document) ? document["response"] : undefined
    return isRecord(value) ? value : {}
  }
  const current = () => {
    const { content, fragments, thinking_content: thinking } = response()
    if (!Array.isArray(fragments)) return { reasoning: String(thinking ?? ""), text: String(content ?? "") }
    const of = (type: string) =>
      fragments.map((fragment) => isRecord(fragment) && fragment["type"] === type ? String(fragment["content"]) : "")
        .join("")
    return { reasoning: of("THINK"), text: of("RESPONSE") }
  }
  const whole = () => {
    const { reasoning, text } = current()
    return { reasoning: earlier.reasoning + reasoning, text: earlier.text + text }
  }

  const run = (base: ReadonlyArray<string>, target: ReadonlyArray<string>, patch: Patch, sticky: string) => {
    const absolute = target[0] === "response" && base.length > 0 ? target : [...base, ...target]
    const older = absolute.join("/") === "response/content" || absolute.join("/") === "response/thinking_content"
    let how = patch.o ?? (older ? "APPEND" : sticky)
    if (patch.o === undefined && Array.isArray(patch.v) && absolute.join("/") === "response") how = "BATCH"
    if (how === "BATCH" && Array.isArray(patch.v)) {
      let innerPath: string | undefined
      let innerOperation = "SET"
      for (const element of patch.v as unknown as Array<Patch>) {
        innerPath = element.p ?? innerPath
        innerOperation = element.o ?? innerOperation
        run(absolute, parts(innerPath), element, innerOperation)
      }
    } else {
      document = change(document, absolute, how, patch.v)
    }
  }

  return {
    startRound() {
      first = true
      if (isRecord(response())) document = change(document, ["response", "status"], "SET", "WIP")
    },
    apply(patch: Patch) {
      const before = whole()
      if (patch.p === undefined && patch.o === undefined && isRecord(patch.v) && "response" in patch.v) {
        document = patch.v
        path = undefined
        operation = "SET"
        if (first) {
          const { reasoning, text } = current()
          earlier = reasoning + text === "" ? before : { reasoning: "", text: "" }
        }
      } else {
        path = patch.p ?? path
        operation = patch.o ?? operation
        run([], parts(path), patch, operation)
      }
      first = false
      const { accumulated_token_usage: total, token_usage: given } = response()
      const exact = isRecord(given) ? given["completion_tokens"] : given
      if (typeof exact === "number") completionTokens = exact
      else if (typeof total === "number" && total > 0) completionTokens = total
    },
    get document() {
      return document
    },
    get result(): Interpreted {
      const status = response()["status"]
      return { ...whole(), status: typeof status === "string" ? status : undefined, completionTokens }
    }
  }
}
