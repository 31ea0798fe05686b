/**
 * Names of samples: one folder each, directly below the folder of samples and nowhere else.
 */
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"

/** Characters of a name. */
export const longestId = 64

/** What a sample's folder may be called. */
export const isSampleId = (name: string): boolean =>
  name.length <= longestId && /^[a-z0-9_-](?:[a-z0-9._-]*[a-z0-9_-])?$/.test(name) && !reserved.test(name)

/** Devices of Windows, whatever follows the first dot: no folder can be called so there. */
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/

/** A separator, a drive or a control character, or a step upwards: whoever sends one means a path. */
const isPath = (text: string): boolean => /[/\\\p{Cc}]|^[a-z]:/iu.test(text) || /^\.+$/.test(text.trim())

const refused = (rule: string) => Result.fail(invalidRequest(`sample_id ${rule}`, "sample_id"))

/**
 * Makes a name of what a caller gave: lower case, other characters than `a-z0-9._-` as `-`, no dot at either end, at most 64
 * characters. A path is refused, and so is a text of which nothing is left.
 */
export const cleanSampleId = (text: string): Result.Result<string, GatewayError> => {
  if (isPath(text)) return refused("must be a name, not a path")
  const cleaned = text.trim().toLowerCase().replaceAll(/[^a-z0-9._-]+/g, "-").replace(/^\.+/, "").slice(0, longestId)
    .replace(/\.+$/, "")
  if (!/[a-z0-9]/.test(cleaned)) return refused("must have a letter from a to z or a digit")
  return isSampleId(cleaned) ? Result.succeed(cleaned) : refused("must not be the name of a device")
}

/** The n-th name to try: the name itself, then `-2`, `-3` and so on behind it, cut where that would be too long. */
export const numbered = (id: string, n: number): string => {
  if (n === 1) return id
  const suffix = `-${n}`
  return `${id.slice(0, longestId - suffix.length).replace(/\.+$/, "")}${suffix}`
}
