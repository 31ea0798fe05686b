/**
 * Every form that the sieve knows. A new family is one module and one line here.
 */
import type { Form } from "../form.ts"
import { functionTag, invokeTag, toolCallTag, toolUseTag } from "./callTag.ts"
import { jsonList, jsonObject } from "./json.ts"
import { wrapperTag } from "./wrapperTag.ts"

export const forms: ReadonlyArray<Form> = [
  jsonObject,
  jsonList,
  wrapperTag,
  toolCallTag,
  functionTag,
  invokeTag,
  toolUseTag
]
