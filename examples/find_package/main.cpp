// Encodes images and prints how many rows each became. usage: first_rows MODEL IMAGE...
#include <fovea/fovea.h>

#include <iostream>
#include <vector>

int main(int argc, char** argv) try {
  fovea::Engine engine = fovea::Engine::load(argc > 1 ? argv[1] : ".");
  std::vector<fovea::MediaItem> images;
  for (int i = 2; i < argc; ++i) images.push_back(fovea::image_file(argv[i]));

  for (const fovea::Embedding& item : engine.encode(images)) {
    std::cout << item.name << ": " << item.rows << " rows of " << item.width << ", first element "
              << item.at(0, 0) << '\n';
  }
} catch (const fovea::Error& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
