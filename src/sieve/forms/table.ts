/**
 * Every form that the sieve knows. A new family is one form in a module of this folder, and one line here. Where several forms may
 * begin alike, the first one that claims the beginning wins.
 */
import type { Form } from "../form.ts"
import { functionGemma } from "./functionGemma.ts"
import { mistral } from "./mistral.ts"
import { actionKeys, functionKeys, functools, jsonList, jsonObject } from "./plainForms.ts"
import { pythonic } from "./pythonic.ts"
import { functionTag, invokeTag, toolCallTag, toolNamedTag, toolUseTag, wrapperTag } from "./tagForms.ts"
import { commandR, harmony, internlm, lfm, llama, tokenCalls } from "./tokenForms.ts"
import { bareToolCode, toolCode } from "./toolCode.ts"

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
  commandR,
  lfm,
  harmony,
  functionGemma,
  mistral,
  pythonic,
  toolCode,
  bareToolCode,
  functools,
  functionKeys,
  actionKeys,
  toolNamedTag
]
