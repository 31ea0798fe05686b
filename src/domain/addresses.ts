/**
 * IP addresses and ranges of them. An IPv4 address that is mapped into IPv6 is that IPv4 address. The zone of an IPv6 address is
 * left out.
 */
import { remembering } from "./remembering.ts"

/** An address as numbers: four of 8 bits, or eight of 16 bits. */
export interface Address {
  readonly family: 4 | 6
  readonly parts: ReadonlyArray<number>
}

/** The addresses that begin with the first `bits` of an address. */
export interface AddressRange {
  readonly address: Address
  readonly bits: number
}

const widthOf = (family: Address["family"]): number => family === 4 ? 8 : 16

const partsOfV4 = (text: string): ReadonlyArray<number> | undefined => {
  if (!/^(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}$/.test(text)) return undefined
  const parts = text.split(".").map(Number)
  return parts.every((part) => part <= 255) ? parts : undefined
}

/** The groups on one side of `::`. An IPv4 address in their place is two groups. */
const groupsOf = (text: string, isLast: boolean): ReadonlyArray<number> | undefined => {
  if (text === "") return []
  const groups: Array<number> = []
  const words = text.split(":")
  for (const [place, word] of words.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(word)) {
      groups.push(Number.parseInt(word, 16))
      continue
    }
    const v4 = isLast && place === words.length - 1 ? partsOfV4(word) : undefined
    if (v4 === undefined) return undefined
    groups.push(v4[0]! * 256 + v4[1]!, v4[2]! * 256 + v4[3]!)
  }
  return groups
}

const partsOfV6 = (text: string): ReadonlyArray<number> | undefined => {
  const sides = text.split("::")
  if (sides.length > 2) return undefined
  const [head, tail] = [groupsOf(sides[0]!, sides.length === 1), groupsOf(sides[1] ?? "", true)]
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (sides.length === 1 ? missing !== 0 : missing < 1) return undefined
  return [...head, ...Array.from({ length: missing }, () => 0), ...tail]
}

/** Bits of the prefix of IPv4 addresses that are mapped into IPv6. */
const mappedBits = 96

const isMapped = (parts: ReadonlyArray<number>): boolean =>
  parts[5] === 0xffff && parts.slice(0, 5).every((part) => part === 0)

const addressOf = remembering((text): Address | undefined => {
  const v4 = partsOfV4(text)
  if (v4 !== undefined) return { family: 4, parts: v4 }
  const parts = text.includes(":") ? partsOfV6(text.replace(/%[\da-z.:-]+$/i, "")) : undefined
  if (parts === undefined) return undefined
  if (!isMapped(parts)) return { family: 6, parts }
  return { family: 4, parts: parts.slice(6).flatMap((part) => [part >> 8, part & 0xff]) }
})

/** The address that a text of at most 64 characters is; `undefined` for another text. */
export const parseAddress = (text: string): Address | undefined => text.length > 64 ? undefined : addressOf(text)

/** The address of an entry of a forwarding header, which may have a port: `192.0.2.1:80`, `[2001:db8::1]:80`. */
export const parseHost = (entry: string): Address | undefined => {
  const text = entry.trim()
  const [, bracketed, v4] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(text) ?? []
  return parseAddress(bracketed ?? v4 ?? text)
}

/** The range that a text is: an address, or one with the length of its prefix (CIDR). */
export const parseRange = (text: string): AddressRange | undefined => {
  const [, network = "", prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = parseAddress(network)
  if (address === undefined) return undefined
  const most = address.family === 4 ? 32 : 128
  const written = prefix === undefined ? undefined : Number(prefix)
  const bits = written === undefined
    ? most
    : address.family === 4 && network.includes(":")
    ? written - mappedBits
    : written
  return bits >= 0 && bits <= most ? { address, bits } : undefined
}

/** The mask of a part: its first bits of the `bits` that are left for it. */
const maskOf = (bits: number, width: number): number => {
  const kept = Math.min(width, Math.max(0, bits))
  return (2 ** width - 1) ^ (2 ** (width - kept) - 1)
}

/** Whether an address is in a range. */
export const isInRange = ({ family, parts }: Address, { address, bits }: AddressRange): boolean => {
  const width = widthOf(family)
  return family === address.family &&
    parts.every((part, place) => ((part ^ address.parts[place]!) & maskOf(bits - place * width, width)) === 0)
}

/** The text of an address, with `::` for the longest run of zeros (RFC 5952). */
export const formatAddress = ({ family, parts }: Address): string => {
  if (family === 4) return parts.join(".")
  let [best, length] = [0, 1]
  for (let start = 0; start < parts.length; start++) {
    let end = start
    while (parts[end] === 0) end++
    if (end - start > length) [best, length] = [start, end - start]
  }
  const hex = parts.map((part) => part.toString(16))
  return length === 1 ? hex.join(":") : `${hex.slice(0, best).join(":")}::${hex.slice(best + length).join(":")}`
}

/** The text of the range that has the first bits of an address: `203.0.113.0/24`. */
export const formatPrefix = ({ family, parts }: Address, bits: number): string => {
  const width = widthOf(family)
  const masked = parts.map((part, place) => part & maskOf(bits - place * width, width))
  return `${formatAddress({ family, parts: masked })}/${bits}`
}

/** How much of a client's address is kept. */
export const addressPrivacies = ["full", "prefix", "none"] as const
export type AddressPrivacy = typeof addressPrivacies[number]

const shown = {
  full: remembering((text) => {
    const address = parseHost(text)
    return address === undefined ? undefined : formatAddress(address)
  }),
  prefix: remembering((text) => {
    const address = parseHost(text)
    return address === undefined ? undefined : formatPrefix(address, address.family === 4 ? 24 : 48)
  }),
  none: () => undefined
} satisfies Record<AddressPrivacy, (text: string) => string | undefined>

/** What is kept of a client's address: the address, its /24 or /48, or nothing. `undefined` for a text that is no address, too. */
export const shownAddress = (text: string, privacy: AddressPrivacy): string | undefined =>
  text.length > 64 ? undefined : shown[privacy](text)
