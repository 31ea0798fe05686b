/**
 * Who made what only its maker can read: the seals of items (`encrypted_content`), and responses that a server stores.
 */
import type { Json } from "./json.ts"
import { isFields } from "./replyExtras.ts"

/** An account, as what it made is compared with. */
export interface Maker {
  /** The upstream's name. */
  readonly upstream: string
  /** Twelve hex digits that stand for the account; empty for a caller's own token. */
  readonly account: string
  /** Names the accounts of the upstream that open one another's seals; `undefined` if the account alone does, or that is unknown. */
  readonly organization: string | undefined
}

/** True unless it is known that the account cannot open what the maker has sealed. */
export const mayOpen = (maker: Maker, { account, organization, upstream }: Maker): boolean =>
  maker.upstream === upstream &&
  (maker.account === account ||
    (maker.organization !== undefined && (organization === undefined || organization === maker.organization)))

/** True for the account of the maker. */
export const isMaker = (maker: Maker, { account, upstream }: Maker): boolean =>
  maker.upstream === upstream && maker.account === account

/** True if an account is of the organisation of a maker. */
export const isOfMaker = (maker: Maker, { account, organization, upstream }: Maker): boolean =>
  maker.upstream === upstream &&
  (maker.account === account || (organization !== undefined && organization === maker.organization))

const sealField = "encrypted_content"

/** The lists of an item whose parts may be sealed. */
export const sealedLists = ["content", "output"] as const

/** The seal of an item or of a part of one. */
export const sealOf = (value: Json | undefined): string | undefined => {
  const seal = isFields(value) ? value[sealField] : undefined
  return typeof seal === "string" ? seal : undefined
}

/** Adds the seals of an item to a list. */
export const collectSeals = (item: Json, into: Array<string>): void => {
  if (!isFields(item)) return
  const seal = sealOf(item)
  if (seal !== undefined) into.push(seal)
  for (const name of sealedLists) {
    const parts = item[name]
    if (!Array.isArray(parts)) continue
    for (const part of parts as ReadonlyArray<Json>) {
      const seal = sealOf(part)
      if (seal !== undefined) into.push(seal)
    }
  }
}
