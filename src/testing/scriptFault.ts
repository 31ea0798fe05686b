/**
 * Reads what a script says of a fault: `NAME key=value …`.
 */
import type { CallName } from "./envelope.ts"
import { faultNames } from "./Fault.ts"
import { faultFits, usualCall } from "./faults.ts"
import type { ScriptedFault } from "./Reply.ts"
import { readCount, readPairs, readWord } from "./scriptValues.ts"

/** The calls whose faults a script can ask for: those that carry its reply. */
const readCall = (word: string): CallName | undefined => word === "completion" || word === "continue" ? word : undefined

const numbers = {
  times: "times",
  after: "after",
  status: "status",
  retry_after: "retryAfter",
  code: "code",
  biz_code: "bizCode",
  ms: "millis",
  bytes: "bytes"
} as const

type NumberOption = keyof typeof numbers

const isNumberOption = (key: string): key is NumberOption => Object.hasOwn(numbers, key)

const isTextOption = (key: string): key is "message" | "reason" => key === "message" || key === "reason"

/** The fault, or what was expected where it cannot be read. */
export const readFault = (rest: string): ScriptedFault | string => {
  const [word, options] = readWord(rest)
  const name = faultNames.find((each) => each === word)
  if (name === undefined) return "the name of a fault"
  const pairs = readPairs(options)
  if (pairs === undefined) return "options such as after=2"
  const call = readCall(pairs.get("call") ?? usualCall(name))
  if (call === undefined || !faultFits(name, call)) {
    return "call=completion or call=continue, whichever it can happen to"
  }
  const read: { -readonly [key in keyof ScriptedFault]?: ScriptedFault[key] } = {}
  for (const [key, value] of pairs) {
    if (isNumberOption(key)) {
      const count = readCount(value, 1e9)
      if (count === undefined) return `a number for ${key}`
      read[numbers[key]] = count
    } else if (isTextOption(key)) {
      read[key] = value
    } else if (key !== "call") {
      return `an option that faults have, not ${key}`
    }
  }
  return { ...read, name, call, times: read.times }
}
