/**
 * Calls in JSON without a tag: `{"tool_calls":[…]}` and its kin, `{"name":…,"arguments":…}` of a declared tool,
 * `{"function_call":…}`, `{"type":"tool_use",…}`, and lists of these.
 */
import { OPEN_BRACE } from "../../domain/stream/characters.ts"
import type { Form } from "../form.ts"
import { bareKeys, readCallList, readCallObject } from "./jsonCalls.ts"

export const jsonObject: Form = {
  name: "JSON object",
  opening: { at: "brace", keys: bareKeys },
  markers: {},
  bound: 512,
  *read(context) {
    yield* readCallObject(context, "bare")
  }
}

export const jsonList: Form = {
  name: "JSON list",
  opening: { at: "bracket", claims: (word, next) => word === "" && next === OPEN_BRACE, keys: bareKeys },
  markers: {},
  bound: 512,
  *read(context) {
    yield* readCallList(context, "bare")
  }
}
