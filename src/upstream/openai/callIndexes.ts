/**
 * Tells which call a piece of a structured call belongs to. By the book its `index` does; servers leave it out, or number
 * every one of several whole calls 0.
 */

/** What a piece says of the call that it belongs to. */
export interface CallPiece {
  readonly index: number | undefined
  readonly id: string | undefined
  readonly name: string | undefined
}

interface Known {
  readonly index: number
  readonly id: string | undefined
}

/** More calls are not told apart; no reply may have as many. */
const mostCalls = 20_000

/** Starts the numbering of one reply's calls, from 0 in the order in which they begin. */
export const callIndexes = (): (piece: CallPiece) => number => {
  const byIndex = new Map<number, Known>()
  const byId = new Map<string, Known>()
  let last: Known | undefined
  let count = 0

  const find = ({ id, index, name }: CallPiece): Known | undefined => {
    if (index !== undefined) {
      const known = byIndex.get(index)
      // A new id alone is not a new call: some servers make one up for every piece.
      const isAnother = name !== undefined && id !== undefined && known?.id !== undefined && known.id !== id
      return isAnother ? byId.get(id) : known
    }
    if (id !== undefined) return byId.get(id)
    return name === undefined ? last : undefined
  }

  return (piece) => {
    const found = find(piece) ?? (count < mostCalls ? undefined : last)
    const known = found ?? { index: count++, id: piece.id }
    if (found === undefined || piece.name !== undefined) {
      if (piece.index !== undefined) byIndex.set(piece.index, known)
      if (piece.id !== undefined && byId.size < 2 * mostCalls) byId.set(piece.id, known)
    }
    last = known
    return known.index
  }
}
