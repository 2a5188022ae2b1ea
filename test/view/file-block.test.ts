/** Files as blocks. */
import { fileBlock, TurnloopError } from "turnloop";
import { expect, test } from "vitest";

test("a file is read into base64 with its type and name, byte for byte", async () => {
  const bytes = Uint8Array.from({ length: 100_001 }, (_, place) => (place * 7) % 256);
  const block = await fileBlock(new File([bytes], "numbers.bin", { type: "application/x-numbers" }));
  const { data } = block as { data: { base64: string } };
  expect(block).toEqual({ type: "file", mediaType: "application/x-numbers", name: "numbers.bin", data });
  expect(new Uint8Array(Buffer.from(data.base64, "base64"))).toEqual(bytes);
});

test("a blob without a type or a name is bytes without a name, and may be empty", async () => {
  expect(await fileBlock(new Blob([]))).toEqual({
    type: "file",
    mediaType: "application/octet-stream",
    data: { base64: "" },
  });
});

test("a file above the limit is refused before it is read", async () => {
  const file = new File(["12345"], "five.txt");
  file.arrayBuffer = () => Promise.reject(new Error("it was read"));
  const refused = await fileBlock(file, { maxBytes: 4 }).catch((error: unknown) => error);
  expect(TurnloopError.is(refused, "FILE_TOO_LARGE")).toBe(true);
  expect((refused as Error).message).toContain("five.txt has 5 bytes");
});
