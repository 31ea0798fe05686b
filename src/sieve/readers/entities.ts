/**
 * XML's entities: the five named ones and character references. Others, as HTML knows them, stay as they are written.
 */
import { HASH, LOWER_X, UPPER_X } from "../../domain/stream/characters.ts"

const named: { readonly [name: string]: string } = { lt: "<", gt: ">", amp: "&", quot: "\"", apos: "'" }

/** No entity that is decoded is longer than this between its `&` and its `;`. */
export const maximalEntity = 10

/** The text for what stands between `&` and `;`, or `undefined` when it is no entity that is decoded. */
export const decodeEntity = (name: string): string | undefined => {
  if (name.charCodeAt(0) !== HASH) return Object.hasOwn(named, name) ? named[name] : undefined
  const isHex = name.charCodeAt(1) === LOWER_X || name.charCodeAt(1) === UPPER_X
  const digits = name.slice(isHex ? 2 : 1)
  if (!(isHex ? /^[0-9a-fA-F]{1,6}$/ : /^[0-9]{1,7}$/).test(digits)) return undefined
  const code = Number.parseInt(digits, isHex ? 16 : 10)
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined
}

/** Decodes every entity of a whole text once. */
export const decodeEntities = (text: string): string =>
  text.includes("&")
    ? text.replace(/&([#0-9A-Za-z]{1,10});/g, (whole, name: string) => decodeEntity(name) ?? whole)
    : text
