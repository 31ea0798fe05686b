/**
 * Finds or brings the Chromium that the components' tests run in. Where there is none it says so, and these tests fail when
 * they are to begin: the others run all the same.
 */
import { executable } from "../chromium.ts"

export default async (): Promise<void> => {
  try {
    process.env["CHROME_PATH"] = await executable()
  } catch (reason) {
    console.error(reason instanceof Error ? reason.message : reason)
  }
}
