/**
 * Every form that the sieve knows. A new family is one module and one line here; where two may begin alike, the first one that claims
 * the beginning has it.
 */
import type { Form } from "../form.ts"
import { functionTag, invokeTag, toolCallTag, toolUseTag } from "./callTag.ts"
import { harmony } from "./harmony.ts"
import { internlm } from "./internlm.ts"
import { jsonList, jsonObject } from "./json.ts"
import { actionKeys, functionKeys } from "./keyValue.ts"
import { llama } from "./llama.ts"
import { mistral } from "./mistral.ts"
import { pythonic } from "./pythonic.ts"
import { tokenCalls } from "./tokenCalls.ts"
import { toolNamedTag } from "./toolNamedTag.ts"
import { wrapperTag } from "./wrapperTag.ts"

export const forms: ReadonlyArray<Form> = [
  jsonObject,
  jsonList,
  wrapperTag,
  toolCallTag,
  functionTag,
  invokeTag,
  toolUseTag,
  tokenCalls,
  llama,
  internlm,
  harmony,
  mistral,
  pythonic,
  functionKeys,
  actionKeys,
  toolNamedTag
]
