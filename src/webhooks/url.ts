/**
 * The URL that a sender calls and signs, as it was given to the sender; or a function that returns it, for URLs that
 * differ, for example by tenant.
 */
export type SignedUrl = string | ((request: Request) => string);

/**
 * The option `url` as a function.
 *
 * @throws {TypeError} it is neither a function nor the text of an HTTP(S) URL; from the function: it returns no text
 */
export function urlOption(url: unknown = (request: Request) => request.url): (request: Request) => string {
  if (typeof url === "function") {
    return (request) => {
      const given: unknown = url(request);
      if (typeof given === "string") return given;
      throw new TypeError(`url must return a string, not ${typeof given}`);
    };
  }
  if (typeof url !== "string" || !/^https?:\/\/\S+$/.test(url)) {
    throw new TypeError("url must be the URL that was given to the sender, or a function that returns it");
  }
  return () => url;
}
