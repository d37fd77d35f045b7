// Encodes pictures and prints how many rows each became. usage: first_rows MODEL PICTURE...
#include <fovea/fovea.h>

#include <iostream>
#include <vector>

int main(int argc, char** argv) try {
  fovea::Engine engine = fovea::Engine::load(argc > 1 ? argv[1] : ".");
  std::vector<fovea::MediaItem> pictures;
  for (int i = 2; i < argc; ++i) pictures.push_back(fovea::image_file(argv[i]));

  for (const fovea::Embedding& item : engine.encode(pictures)) {
    std::cout << item.name << ": " << item.rows << " rows of " << item.width << ", first element "
              << item.at(0, 0) << '\n';
  }
} catch (const fovea::Error& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
