/**
 * Assigns the pieces of structured calls to calls. The specified way is by `index`; but servers omit it, or number all of
 * several whole calls 0, and their ids are missing, empty, the same for all calls, or different for every piece.
 */
import { ObjectScan } from "../../domain/stream/ObjectScan.ts"

/** The fields of a piece that identify its call. */
export interface CallPiece {
  readonly index: number | undefined
  readonly id: string | undefined
  readonly name: string | undefined
  readonly argumentsDelta: string
}

interface Known {
  readonly index: number
  /** The server's number for the call, if its first piece had one. */
  readonly place: number | undefined
  id: string | undefined
  name: string | undefined
  /** The last list in which its name was. */
  list: number
  readonly arguments: ObjectScan
}

/** More calls are not distinguished; the limit of a reply is lower. */
const mostCalls = 20_000

/**
 * Whether a piece with a name begins a new call instead of continuing the one that its index or id leads to. Servers repeat the
 * name on later pieces, but a call does not continue after its arguments are complete, and is in a list only once.
 */
const isAnother = (known: Known, { argumentsDelta, id, name }: CallPiece, list: number): boolean => {
  if (id !== undefined && known.id !== undefined && known.id !== id) return true
  if (known.name === undefined) return false
  if (known.name !== name) return true
  const saysSame = id !== undefined && known.id === id
  const isSameList = known.list === list
  if (known.arguments.isBlank) return isSameList && !saysSame
  if (!known.arguments.isClosed) return false
  return argumentsDelta.trim() === "" ? isSameList && !saysSame : isSameList || !saysSame
}

/** Numbers the calls of one reply from 0, in the order in which they begin. Pieces with the same `list` arrived together. */
export const callIndexes = (): (piece: CallPiece, list: number) => number => {
  const byIndex = new Map<number, Known>()
  const byId = new Map<string, Known>()
  let last: Known | undefined
  let count = 0

  /** The call that index and id lead to. */
  const lead = ({ argumentsDelta, id, index, name }: CallPiece, ofId: Known | undefined): Known | undefined => {
    // The id distinguishes several calls with one index.
    if (index !== undefined) {
      const known = ofId?.place === index ? ofId : byIndex.get(index)
      // A piece of arguments with a number that none has belongs to the call whose arguments are missing.
      const isRest = id === undefined && name === undefined && last?.name !== undefined && !last.arguments.isClosed
      return known ?? (isRest ? last : undefined)
    }
    if (ofId !== undefined) return ofId
    if (name !== undefined) return id === undefined && last?.name === name && last.arguments.isOpen ? last : undefined
    return id !== undefined && last?.arguments.isClosed === true && argumentsDelta.trim() !== "" ? undefined : last
  }

  const find = (piece: CallPiece, list: number): Known | undefined => {
    const ofId = piece.id === undefined ? undefined : byId.get(piece.id)
    const known = lead(piece, ofId)
    // A new id alone is not a new call: some servers send a different one with every piece.
    if (known === undefined || piece.name === undefined || !isAnother(known, piece, list)) return known
    return ofId === undefined || ofId === known || isAnother(ofId, piece, list) ? undefined : ofId
  }

  return (piece, list) => {
    const { id, index, name } = piece
    const found = find(piece, list) ?? (count < mostCalls ? undefined : last)
    const known = found ??
      { index: count++, place: index, id, name, list, arguments: new ObjectScan() }
    if (found === undefined || name !== undefined || (index !== undefined && !byIndex.has(index))) {
      if (index !== undefined) byIndex.set(index, known)
      if (id !== undefined && byId.size < 2 * mostCalls) byId.set(id, known)
      known.id ??= id
      known.name ??= name
      known.list = list
    }
    known.arguments.push(piece.argumentsDelta)
    last = known
    return known.index
  }
}
