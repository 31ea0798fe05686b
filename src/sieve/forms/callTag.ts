/**
 * A call tag outside a wrapper. Where only the wrapper's closing tag was written, it goes with the last call.
 */
import type { Context, Form } from "../form.ts"
import type { TagHead } from "../readers/tagHead.ts"
import type { Reading } from "../reading.ts"
import { readTagCall, wrapperTags } from "./tagCalls.ts"
import { takeStrayCloser } from "./tagPieces.ts"

const closersAfter = new Set([...wrapperTags, "tool_call"])

function* readAlone(context: Context, head: TagHead | undefined): Reading<void> {
  if (head === undefined || (yield* readTagCall(context, head)) !== "call") return
  yield* takeStrayCloser(context, head.name === "tool_call" ? wrapperTags : closersAfter)
}

/** `<tool_call>…</tool_call>`, with JSON, child tags, a function tag, or GLM's key and value tags in it. */
export const toolCallTag: Form = {
  name: "tool_call tag",
  opening: { at: "tag", names: ["tool_call"] },
  markers: { tags: ["tool_call", "arg_key", "arg_value"] },
  bound: 2048,
  read: readAlone
}

/** `<function=wx>…</function>`, `<function_call>{…}</function_call>`, `<function_call name="wx">{…}</function_call>`. */
export const functionTag: Form = {
  name: "function tag",
  opening: { at: "tag", names: ["function", "function_call"] },
  markers: { tags: ["function", "function_call", "parameter"] },
  bound: 1024,
  read: readAlone
}

/** `<invoke name="wx"><parameter name="city">Oslo</parameter></invoke>`, with marker noise or not. */
export const invokeTag: Form = {
  name: "invoke tag",
  opening: { at: "tag", names: ["invoke"] },
  markers: { tags: ["invoke", "parameter"] },
  bound: 1024,
  read: readAlone
}

/** `<tool_use><name>wx</name><input>{…}</input></tool_use>`. */
export const toolUseTag: Form = {
  name: "tool_use tag",
  opening: { at: "tag", names: ["tool_use"] },
  markers: { tags: ["tool_use"] },
  bound: 1024,
  read: readAlone
}
