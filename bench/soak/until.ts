/**
 * Pauses, and polls of other processes.
 */

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Polls a condition for at most `within` milliseconds. Returns whether it holds. */
export const until = async (holds: () => Promise<boolean>, within: number): Promise<boolean> => {
  const began = performance.now()
  while (!await holds()) {
    if (performance.now() - began > within) return false
    await pause(50)
  }
  return true
}

/** Polls a condition. Throws with its name if it does not hold within two minutes. */
export const expectSoon = async (name: string, holds: () => Promise<boolean>): Promise<void> => {
  if (!await until(holds, 120_000)) throw new Error(`not within two minutes: ${name}`)
}
