/**
 * Pauses, and polls of other processes.
 */

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Polls a condition, by default without end. Returns whether it holds. */
export const until = async (holds: () => Promise<boolean>, within = Infinity): Promise<boolean> => {
  const began = performance.now()
  while (!await holds()) {
    if (performance.now() - began > within) return false
    await pause(50)
  }
  return true
}
