/** Bytes that are sent to many clients and held once: they do not count for the connections that they wait on. */
const shared = new WeakSet<Uint8Array>()

/** Marks bytes that live on after a reply. */
export const shareBytes = <Bytes extends Uint8Array>(bytes: Bytes): Bytes => {
  shared.add(bytes)
  return bytes
}

export const isShared = (bytes: unknown): boolean => bytes instanceof Uint8Array && shared.has(bytes)
